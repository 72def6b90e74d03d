"""``chaoskit``: where the process begins.

Nothing slow is imported before its signals are seen to, so that Ctrl-C at any moment ends it with a
message.
"""

from __future__ import annotations

import sys

from chaoskit.cli.process import Process

TYPE_CHECKING = False  # as typing has it, which takes its time to import
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Args:
        arguments: the words of a command, within another program; by default those of this process,
            whose signals and standard streams are then seen to as well.
    """
    if arguments is None:
        with Process() as process:
            from chaoskit.cli.commands import ended

            code = process.code(ended(sys.argv[1:]))
    else:
        from chaoskit.cli.commands import ended

        code = ended(arguments)
    sys.exit(code)


if __name__ == "__main__":
    main()
