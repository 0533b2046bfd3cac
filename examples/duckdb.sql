-- Questions to recordings of many hosts, with DuckDB 1.1 or newer:
--
--   duckdb -cmd "SET VARIABLE recordings = '/data/gpusnap/*/*.jsonl*'" -init examples/duckdb.sql
--   SELECT * FROM peaks ORDER BY peak_bytes DESC LIMIT 10;
--
-- The schema is pinned: a first file whose figures are all null can't mistype a column. A torn line is skipped.
-- Null stays null: count it with `unmeasured`; SUM and AVG leave it out, so never read a sum without it.

CREATE OR REPLACE VIEW samples AS
SELECT
    host.hostname AS host, boot_id, taken_at, uptime_seconds, labels, adapters, processes, provenance
FROM read_json(
    getvariable('recordings'),
    format = 'newline_delimited',
    ignore_errors = true,
    maximum_object_size = 67108864,
    columns = {
        taken_at: 'TIMESTAMP',
        boot_id: 'VARCHAR',
        uptime_seconds: 'DOUBLE',
        labels: 'MAP(VARCHAR, VARCHAR)',
        host: 'STRUCT(hostname VARCHAR)',
        adapters: 'STRUCT(id VARCHAR, "index" BIGINT, model VARCHAR, health VARCHAR, processes_listed VARCHAR,
            memory STRUCT(total_bytes BIGINT, used_bytes BIGINT, free_bytes BIGINT, reserved_bytes BIGINT),
            load STRUCT(gpu_percent DOUBLE, memory_bandwidth_percent DOUBLE),
            ecc STRUCT(uncorrected_volatile BIGINT, uncorrected_aggregate BIGINT),
            accounting STRUCT(attributed_bytes BIGINT, unattributed_bytes BIGINT, unmeasured_processes BIGINT),
            provenance BIGINT)[]',
        processes: 'STRUCT(adapter VARCHAR, pid BIGINT, start_ticks BIGINT, name VARCHAR, "user" VARCHAR,
            category VARCHAR, vram_bytes BIGINT, spill_bytes BIGINT, gpu_percent DOUBLE, self BOOLEAN,
            provenance BIGINT)[]',
        provenance: 'MAP(VARCHAR, VARCHAR)[]'
    }
)
WHERE taken_at IS NOT NULL;

-- One row a card and sample.
CREATE OR REPLACE VIEW cards AS
SELECT
    host, boot_id, taken_at, card.id AS adapter, card."index" AS number, card.model, card.health,
    card.processes_listed, card.memory.total_bytes, card.memory.used_bytes,
    card.accounting.unattributed_bytes, card.load.gpu_percent, card.ecc.uncorrected_volatile
FROM (SELECT *, unnest(adapters) AS card FROM samples);

-- One row a process, card and sample; gpusnap's own row left out.
CREATE OR REPLACE VIEW process_samples AS
SELECT
    host, boot_id, taken_at, uptime_seconds, row.adapter, row.pid, row.start_ticks, row.name, row."user" AS owner,
    row.category, row.vram_bytes, row.spill_bytes, row.gpu_percent
FROM (SELECT *, unnest(processes) AS row FROM samples)
WHERE NOT row.self;

-- What each process held at most, and when; a reused pid is another process (start_ticks).
CREATE OR REPLACE VIEW peaks AS
SELECT
    host, adapter, boot_id, pid, start_ticks, any_value(name) AS name, any_value(owner) AS owner,
    count(*) AS samples, count(*) - count(vram_bytes) AS unmeasured,
    min(taken_at) AS first_seen, max(taken_at) AS last_seen,
    max(vram_bytes) AS peak_bytes, arg_max(taken_at, vram_bytes) AS peak_at
FROM process_samples
GROUP BY host, adapter, boot_id, pid, start_ticks;

-- Candidates for leaks: in twelve stretches of equal length the lowest figure never falls by more than 16 MiB,
-- rises by 64 MiB in all, and the second half has at least 30 % of the growth. `gpusnap explain FILE` judges.
CREATE OR REPLACE VIEW leaks AS
WITH stretches AS (
    SELECT
        host, adapter, boot_id, pid, start_ticks, name, owner, uptime_seconds, vram_bytes,
        ntile(12) OVER (
            PARTITION BY host, adapter, boot_id, pid, start_ticks ORDER BY uptime_seconds
        ) AS stretch
    FROM process_samples
    WHERE vram_bytes IS NOT NULL
),
minima AS (
    SELECT
        host, adapter, boot_id, pid, start_ticks, any_value(name) AS name, any_value(owner) AS owner, stretch,
        min(vram_bytes) AS low, min(uptime_seconds) AS began, max(uptime_seconds) AS ended
    FROM stretches
    GROUP BY host, adapter, boot_id, pid, start_ticks, stretch
),
steps AS (
    SELECT
        *,
        low - lag(low) OVER (PARTITION BY host, adapter, boot_id, pid, start_ticks ORDER BY stretch) AS rise
    FROM minima
)
SELECT
    host, adapter, boot_id, pid, start_ticks, any_value(name) AS name, any_value(owner) AS owner,
    arg_min(low, stretch) AS first_bytes, arg_max(low, stretch) AS last_bytes,
    arg_max(low, stretch) - arg_min(low, stretch) AS growth_bytes,
    (arg_max(low, stretch) - arg_min(low, stretch)) * 3600.0 / (max(ended) - min(began)) AS bytes_per_hour
FROM steps
GROUP BY host, adapter, boot_id, pid, start_ticks
HAVING count(*) = 12
    AND max(ended) > min(began)
    AND coalesce(min(rise), 0) >= -16777216
    AND arg_max(low, stretch) - arg_min(low, stretch) >= 67108864
    AND arg_max(low, stretch) - max(low) FILTER (stretch = 6)
        >= 0.3 * (arg_max(low, stretch) - arg_min(low, stretch));

-- What was not measured, by field and reason: read it beside every sum.
CREATE OR REPLACE VIEW unmeasured AS
WITH entries AS (
    SELECT host, 'adapter' AS kind, provenance[card.provenance + 1] AS entry
    FROM (SELECT host, provenance, unnest(adapters) AS card FROM samples)
    UNION ALL
    SELECT host, 'process', provenance[row.provenance + 1]
    FROM (SELECT host, provenance, unnest(processes) AS row FROM samples)
),
leaves AS (
    SELECT host, kind, unnest(map_entries(entry)) AS leaf FROM entries
)
SELECT
    host, kind, leaf.key AS field, split_part(substr(leaf.value, 6), ' ', 1) AS reason, count(*) AS rows
FROM leaves
WHERE starts_with(leaf.value, 'null:')
GROUP BY ALL;
