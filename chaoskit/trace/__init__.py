"""The tracer: follows a task's processes and stops them at state-changing system calls.

Linux only, by ptrace and a seccomp filter, with the standard library's ctypes and no privilege.
"""
