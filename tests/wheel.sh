# Every command of the installed wheel, away from the checkout and without the dev extra. Usage: sh tests/wheel.sh
set -eu
machine=$PWD/examples/machines/rtx4080-desktop
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

gpusnap --version
python -m gpusnap --version
gpusnap --help > help.txt
gpusnap snap > here.json
gpusnap snap --replay "$machine" -o a.json
gpusnap ps --replay "$machine" > ps.txt
gpusnap ps --from a.json > ps2.txt
grep -q 'RTX 4080' ps.txt
grep -q 'RTX 4080' ps2.txt
gpusnap snap --schema > schema.json
gpusnap snap --replay "$machine" --no-processes -o b.json
gpusnap diff a.json b.json > diff.txt
gpusnap diff a.json b.json --json > diff.json
gpusnap diff --schema > diff-schema.json
gpusnap record series.jsonl --replay "$machine" --count 2 --every 100ms
gpusnap record series.jsonl --summary summary.json -- true
gpusnap explain --replay "$machine" > explain.txt
gpusnap explain pid:4711 --replay "$machine" --json > explain.json
gpusnap explain series.jsonl --format svg > series.svg
gpusnap explain series.jsonl --format html > series.html
gpusnap explain series.jsonl --format openmetrics > series.om
gpusnap snap --replay "$machine" --format prometheus > gpusnap.prom
gpusnap snap --replay "$machine" --save-raw raw -o raw.json
gpusnap snap --replay raw > again.json
for file in *.json; do python -m json.tool "$file" > /dev/null; done
echo 'the bare wheel: every command ran'
