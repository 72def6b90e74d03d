"""Floor 3: the only floor that starts or kills a process.

One supervisor per worker hosts the fake services, hears every report from the task and numbers
everything that happens. It may import `checkers`, `trace`, `runtime`, `probe` and `model`.
"""
