"""The travelling salesperson problem."""
