"""The sandbox: a generated program is hostile until shown otherwise.

policy      the static gate: which syntax, names and attributes a program may use at all
layout      which view of the distances a program gets, from its syntax tree
namespace   the builtins, modules and random numbers a program can reach
isolation   which programs may share a process among their rollouts
memory      arrays that start as zeros
confine     what the kernel is told to refuse
jobs        what crosses between a worker and its children
board       the memory file that instances are read from
zygote      the warm process that forks one confined child per job, and nothing else
child       what runs in that child: gate, compile, rollouts, results as fixed-width numbers
worker      the parent's end of a zygote
outcome     what the reports and the end of a child mean

What it does not stop: a flaw in the CPU or the kernel. The gate alone would leave the disk one
mistake away, and the kernel alone would leave the clock and the interpreter's state readable, so
neither is optional.
"""
