"""A history that survives: samples appended to a file that users, cron and other recorders share.

`writer` appends one line, `schedule` says when, `loop` does it again and again, `signals` ends it, `child` runs
a command meanwhile, `summary` says what it took and left. The collector, the encoder and the clock come in as
arguments.
"""

from __future__ import annotations
