"""Entry point: `gpusnap` and `python -m gpusnap`."""

from __future__ import annotations

import sys


def main() -> None:
    from gpusnap.cli.start import start

    start(sys.argv[1:])


if __name__ == "__main__":
    main()
