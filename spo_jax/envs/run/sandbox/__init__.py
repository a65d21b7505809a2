"""The sandbox: it treats every generated program as hostile.

gate/           decides before a program runs
  policy        the syntax, names and attributes that a program may use
  names         the lists of those names
  namespace     the builtins, modules and random numbers that a program can reach
  isolation     decides which programs may share a process among their rollouts
process/        where it runs
  starting      starts a zygote's process
  launch        the script that this runs
  zygote        the warm process that forks one confined child per job, and nothing else
  confine       the kernel's restrictions
child           the code of that child: gate, compile, rollouts, results as fixed-width numbers
searching       a child that runs a search of `spo solve`
adapting        a child that runs an adaptive search over several operators (G-LNS)
acts            what all children do
layout          chooses a program's view of the distances from its syntax tree
memory          arrays that start as zeros
meter           counts the work of programs, for rollouts that end by it
jobs            messages between a worker and its children
instance_store  the memory file with the instances
worker          the parent's end of a zygote
outcome         interprets a child's reports and its end

The sandbox does not stop flaws in the CPU or the kernel. Both the gate and the kernel's
restrictions are required: the gate alone leaves the disk one mistake away, and the kernel alone
leaves the clock and the interpreter's state readable.
"""
