"""The tracer: follows a task's processes and stops them at state-changing system calls.

Linux only, by ptrace and a seccomp filter, with the standard library's ctypes and no privilege.
"""

FOREIGN, MAPPED, OUTSIDE, RING, IPC = "foreign", "mapped", "outside", "ring", "ipc"
"""What is noted of a task: calls by another architecture's table, stores into a mapped file,
changes outside the work folder and the known services, programs that make calls by io_uring, and
objects of System V's or POSIX's interprocess communication, which outlive a process and are no
files."""

UNMOVED = "unmoved"
"""The same of an attempt whose own clock could not be moved, because nothing can be traced here."""

STRANGER, NOBODY, ALLOWED, UNSEEN = "stranger", "nobody", "allowed", "unseen"
"""Addresses that are no service of the run, and were refused; ports of this machine at which nobody
listened, ever; addresses that were let through because the user says so; why a task could not be
traced, so that none of this was seen."""
