"""The tracer: follows a task's processes and stops them at state-changing system calls.

Linux only, by ptrace and a seccomp filter, with the standard library's ctypes and no privilege.
"""

FOREIGN, MAPPED, OUTSIDE = "foreign", "mapped", "outside"
"""What is noted of a task: calls by another architecture's table, stores into a mapped file,
changes outside the work folder and the known services."""

UNMOVED = "unmoved"
"""The same of an attempt whose own clock could not be moved, because nothing can be traced here."""
