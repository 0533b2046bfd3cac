"""Every threshold of every finding, in one place. README lists them; a test holds both together."""

from __future__ import annotations

MIB = 1024**2
GIB = 1024**3

# The card ------------------------------------------------------------------------------------------------
FULL_SHARE = 0.80  # used / total
UNATTRIBUTED_BYTES = 512 * MIB
UNATTRIBUTED_SHARE = 0.05  # of the card; the larger of the two counts
BASELINE_SHARE = 0.10  # of the card; more than this is never taken for the driver's own use
BASELINE_TOLERANCE_BYTES = 128 * MIB  # siblings with rests this equal: the driver's own
ASCEND_FIRMWARE_BYTES = 3600 * MIB  # of an Ascend chip, always: idle ones show 2850 to 3450 MB
RESERVED_BYTES = 256 * MIB
BANDWIDTH_BOUND_PERCENT = 80
STARVED_GPU_PERCENT = 30
STARVED_CPU_PERCENT = 80  # of one core

# Processes -----------------------------------------------------------------------------------------------
ORPHAN_BYTES = 64 * MIB  # less is no reason to end anything
BARE_CONTEXT_BYTES = GIB  # a rank's context on a card that is not its own is smaller
BARE_CONTEXT_RATIO = 4  # and its own card holds this many times as much
CONTEXT_ONLY_LEAST_BYTES = 64 * MIB
CONTEXT_ONLY_BYTES = 640 * MIB
SPILL_BYTES = 256 * MIB
CACHE_BYTES = GIB

# Models --------------------------------------------------------------------------------------------------
KV_SHARE = 0.50  # of what the process holds
KV_FULL_SHARE = 0.95  # of the cache in use: a server then evicts or makes requests wait

# Error counters ------------------------------------------------------------------------------------------
CORRECTED_ERRORS = 1000  # since the driver was loaded; below this corrected errors are everyday

# Recordings ----------------------------------------------------------------------------------------------
SAMPLES = 12  # fewer: not enough to tell
GROWTH_BYTES = 64 * MIB  # over the recording
GROWTH_NOISE = 3.0  # and this many times the series' own noise
MONOTONY = 0.6  # Goodman and Kruskal's gamma of the minima over time
LEVEL_NOISE = 8.0  # a range below this many deviations is noise about a level
LATE_PACE = 0.6  # slope of the second half over the whole's: 1 is steady, a warm-up has almost none left
STEADY_PACE = 0.75  # without steps to be seen it must be this steady: what fills up slows down
SETTLED_PACE = 0.2
END_SHARE = 1 / 6  # of the time
END_PACE = 0.4  # its slope over the whole's: a rise that is flatter has ended, or is about to
FALLEN_SHARE = (
    0.15  # of the growth: minima that fall by more in between come and go, and nothing was lost for good
)
CYCLES = 4
CYCLES_RISEN = 0.6  # of a step leak's cycles
STEPS = 5
LOADING_SECONDS = 900.0  # a process younger than this that rose from its start on may just be loading
SWING_BYTES = 32 * MIB  # the smallest rise and fall that counts as a cycle
SWING_SHARE = 0.15  # of the range
SWING_NOISE = 6.0
FINE_SWING_NOISE = 10.0  # a thousand samples of noise alone swing by 6.5
LOADED_SHARE = 0.9  # of the growth, in samples with load
LOAD_SEEN_SHARE = 0.1  # of the time at least, both with and without load, to tell them apart
RESIDUAL_BYTES = 256 * MIB
RESIDUAL_SHARE = 0.5  # of what an exited process held did not come free
RESIDUAL_WAIT_SAMPLES = 5
HELD_IDLE_SECONDS = 3600.0
CLOCK_STEP_SECONDS = 2.0
GAP_INTERVALS = 2.5  # of the usual interval
GAP_LEAST_SECONDS = 1.0
