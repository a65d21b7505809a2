"""Reading and writing files of instances, of any problem."""
