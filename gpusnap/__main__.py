"""Entry point: `gpusnap` and `python -m gpusnap`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    from gpusnap.cli import exits

    try:
        from gpusnap.cli.start import start
    except KeyboardInterrupt:  # afterwards `start` sees to it
        os._exit(exits.INTERRUPTED)
    start(sys.argv[1:])


if __name__ == "__main__":
    main()
