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
for file in here.json a.json schema.json; do python -m json.tool "$file" > /dev/null; done
echo 'the bare wheel: every command ran'
