"""What servers write about their memory into their logs, read by pure functions.

A log is the workload's own word: `reported`, never `measured`. Logs may hold prompts of users: `lines.py`
keeps nothing but the few lines that speak of memory, and no line that merely quotes one.
"""
