# ruff: noqa: E501 - command lines are kept whole
"""Secrets in command lines: report by report, then as properties over many secrets and many harmless words."""

from __future__ import annotations

import base64
import hashlib
import shlex
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpusnap.collect.key_shapes import is_random
from gpusnap.collect.redact import MASK, redact
from gpusnap.collect.secret_names import is_secret_name
from tests.unit.collect.harmless_commands import commands

HARMLESS = commands()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("vllm serve --api-key sk-AAAA --hf-token=hf_BBBB", "vllm serve --api-key *** --hf-token=***"),
        ("vllm serve m --api-key one two three --port 80", "vllm serve m --api-key *** *** *** --port 80"),
        ("llama-server --api-key a,b -hft hf_x -m q.gguf", "llama-server --api-key *** -hft *** -m q.gguf"),
        ("env HF_TOKEN=x WANDB_API_KEY=y DEBUG=1 python a.py", "env HF_TOKEN=*** WANDB_API_KEY=*** DEBUG=1 python a.py"),
        ("docker run -e HF_TOKEN=a,b=c --env=OPENAI_API_KEY=x img", "docker run -e HF_TOKEN=*** --env=OPENAI_API_KEY=*** img"),
        ("git clone https://bob:hunter2@host.example/x.git", "git clone https://bob:***@host.example/x.git"),
        ("ffmpeg -i rtsp://admin:p@ss/w:rd@10.0.0.9:554/s1", "ffmpeg -i rtsp://admin:***@10.0.0.9:554/s1"),
        ("ffmpeg -i rtsp://:secret@cam/1", "ffmpeg -i rtsp://:***@cam/1"),
        ("curl -H 'Authorization: Bearer abc' http://h", "curl -H 'Authorization: ***' http://h"),
        ("curl -H 'X-Api-Key: abc def' http://h", "curl -H 'X-Api-Key: ***' http://h"),
        ("curl 'http://h/v1?api_key=abc&n=1&sig=2'", "curl 'http://h/v1?api_key=***&n=1&sig=2'"),
        ("jupyter-lab --NotebookApp.token=abc --ServerApp.password=argon2:x", "jupyter-lab --NotebookApp.token=*** --ServerApp.password=***"),
        ("launch.py --gradio-auth alice:pw --api-auth bob:pw --ngrok 2abc", "launch.py --gradio-auth *** --api-auth *** --ngrok ***"),
        ("python t.py wandb.api_key=abc +hub.token=x", "python t.py wandb.api_key=*** +hub.token=***"),
        ("java Main --accessToken abc --username Steve", "java Main --accessToken *** --username Steve"),
        ("java -Ddb.password=abc Main", "java -Ddb.password=*** Main"),
        ("steamcmd +login alice hunter2 +quit", "steamcmd +login alice *** +quit"),
        ("ray start --redis-password=5241590000000000 --head", "ray start --redis-password=*** --head"),
        ("x --hf-token --port 80", "x --hf-token --port 80"),
        ("x --token '' --n 1", "x --token '' --n 1"),
        ("x --api-key-file /etc/k --password-file=/etc/p", "x --api-key-file /etc/k --password-file=/etc/p"),
        ("""sh -c 'HF_TOKEN=abc srv --api-key "a b" m'""", """sh -c 'HF_TOKEN=*** srv --api-key *** m'"""),
        ("""srv --json '{"api_key": "a b", "model": "m"}'""", """srv --json '{"api_key": "***", "model": "m"}'"""),
        (r"""sh -c 'curl -d "{\"token\":\"abc\"}" h'""", r"""sh -c 'curl -d "{\"token\":\"***\"}" h'"""),
        ("""srv --json "{'password': 'x', 'n': 1}" """, """srv --json "{'password': '***', 'n': 1}" """),
    ],
)  # fmt: skip
def test_report_103_values_go_and_names_stay(line: str, shown: str) -> None:
    assert redact(shlex.split(line)) == shlex.split(shown)


@pytest.mark.parametrize(
    "key",
    [
        # The issuers' published formats; every one made up.
        "sk-proj-" + "a1B2c3D4" * 6, "sk-ant-api03-" + "Zx9_Yw8-" * 5, "sk-or-v1-" + "0f" * 32, "sk-" + "aB3dE6gH" * 6,
        "hf_" + "AbCdEfGhIj" * 3 + "Klmn", "ghp_" + "a1B2" * 9, "github_pat_11ABCDEFG0" + "x9Y8" * 10, "gho_" + "a1B2" * 9,
        "glpat-" + "x9Y8" * 5, "xoxb-123456789012-1234567890123-" + "AbCd" * 6, "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE",
        "AIza" + "Sy0_-" * 7, "nvapi-" + "a1B2" * 16, "gsk_" + "a1B2" * 13, "r8_" + "a1B2" * 9, "pplx-" + "a1b2" * 12,
        "dapi" + "0123abcd" * 4, "hvs." + "CAES" * 8, "glsa_" + "a1B2" * 8 + "_0f0f0f0f", "dckr_pat_" + "a1B-" * 7,
        "npm_" + "a1B2" * 9, "pypi-AgEIcHlwaS5vcmc" + "CJD1" * 10, "tskey-auth-" + "kFGi-12" * 3, "xai-" + "a1B2" * 20,
        "sk_live_" + "a1B2" * 6, "SG." + "a1B2" * 5 + "x." + "c3D4" * 10, "123456789:AA" + "Hd-f_3" * 6,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "lsv2_pt_" + "0f" * 16 + "_0f0f0f",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["{}", "x={}", "--opt={}", "a,{},b", "'{}'", "http://h/{}/x", "run {} now"])
def test_a_key_of_a_known_issuer_is_told_by_its_prefix(key: str, place: str) -> None:
    (shown,) = redact([place.format(key)])
    assert key not in shown
    assert shown == place.format(MASK)


@pytest.mark.parametrize("command", HARMLESS, ids=[command[0][-20:] for command in HARMLESS])
def test_a_harmless_command_is_left_to_the_letter(command: list[str]) -> None:
    assert redact(command) == command


def test_the_harmless_commands_are_many() -> None:
    assert len({word for command in HARMLESS for word in command}) > 400


@given(st.lists(st.sampled_from([word for command in HARMLESS for word in command if not word.startswith("-")])))
@example(["-p", "a b"])
def test_harmless_words_never_change_in_any_order(words: list[str]) -> None:
    assert redact(words) == words


SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=60).filter(
    lambda text: text[0] not in "-\"'" and text.lower() not in ("bearer", "basic", "token", "digest", "negotiate", "true")
)  # fmt: skip
# Names that people give keys: flags of the programs, variables of the services.
FLAGS = ["--api-key", "--api_key", "--hf-token", "--token", "--password", "--admin-key", "--wandb-api-key", "-hft",
         "--NotebookApp.token", "--secret", "--access-token", "--accessToken", "--auth-token", "--openai-api-key",
         "--client-secret", "--rpc-secret", "--passphrase", "--ssl-keyfile-password"]  # fmt: skip
VARIABLES = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY",
             "GITHUB_TOKEN", "DB_PASSWORD", "POSTGRES_PASSWORD", "CIVITAI_API_TOKEN", "NGC_API_KEY",
             "SECRET_KEY", "MYSQL_PWD", "ENCRYPTION_KEY", "SMTP_PASS"]  # fmt: skip
COMMAND = st.sampled_from(HARMLESS)


def assert_gone(secret: str, words: list[str], before: list[str]) -> None:
    shown = redact(words)
    assert len(shown) == len(words)
    harmless = "\0".join(before)
    assert secret in harmless or secret in MASK or secret not in "\0".join(shown)


@given(COMMAND, st.sampled_from(FLAGS), SECRET, st.booleans())
def test_a_secret_behind_a_flag_never_survives(command: list[str], flag: str, secret: str, joined: bool) -> None:
    words = [f"{flag}={secret}"] if joined else [flag, secret]
    assert_gone(secret, [*command, *words, "--port", "8000"], [*command, flag, "--port", "8000"])


@given(COMMAND, st.sampled_from(VARIABLES), SECRET, st.sampled_from(["{}", "-e{}", "--env={}", "--set=a=1,{}"]))
def test_a_secret_in_a_variable_never_survives(command: list[str], name: str, secret: str, place: str) -> None:
    word = place.format(f"{name}={secret}")
    assert_gone(secret, ["env", word, *command], ["env", place.format(f"{name}="), *command])


@given(COMMAND, SECRET.filter(lambda text: not text.isdigit()), st.sampled_from(["rtsp", "https", "postgres"]))
def test_a_password_in_a_url_never_survives(command: list[str], secret: str, scheme: str) -> None:
    url = f"{scheme}://alice:{secret}@cam.example:554/stream"
    assert_gone(secret, [*command, url], [*command, url.replace(secret, "")])


@given(
    SECRET.filter(lambda text: not set("'\"\\ ") & set(text)), st.sampled_from(FLAGS), st.sampled_from(VARIABLES)
)
def test_a_secret_in_a_shells_command_never_survives(secret: str, flag: str, name: str) -> None:
    for inner in (
        f"{name}={secret} exec srv",
        f"srv {flag} {secret} -x",
        f'srv {flag} "{secret}"',
        f"srv {flag}='{secret}' a",
    ):
        assert_gone(secret, ["sh", "-c", inner], ["sh", "-c", inner.replace(secret, "")])


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=4).filter(
        lambda text: text.strip() == text
    )
)
def test_a_secret_in_json_never_survives(secret: str) -> None:
    import json

    document = json.dumps({"n": 1, "api_key": secret, "m": "x"})
    assert_gone(json.dumps(secret)[1:-1], ["srv", document], ["srv", '{"n": 1, "api_key": "", "m": "x"}'])


@given(st.lists(st.text(max_size=80), max_size=12))
def test_any_words_give_as_many_words_and_redaction_is_stable(words: list[str]) -> None:
    once = redact(words)
    assert len(once) == len(words)
    assert redact(once) == once


def draw(number: int, length: int, alphabet: str) -> str:
    """Text of chance that is the same in every run."""
    stream = hashlib.shake_256(f"{number} {length} {alphabet}".encode()).digest(length * 2)
    return "".join(alphabet[(stream[2 * i] << 8 | stream[2 * i + 1]) % len(alphabet)] for i in range(length))


@pytest.mark.parametrize(
    ("alphabet", "length", "at_least"),
    [
        (string.ascii_letters + string.digits, 32, 98),
        (string.ascii_letters + string.digits, 40, 99),
        (string.ascii_letters + string.digits + "-_", 43, 96),
        (string.ascii_lowercase + string.digits, 40, 98),
        (string.ascii_uppercase + "234567", 52, 98),
    ],
)
def test_keys_of_chance_are_told_without_any_name(alphabet: str, length: int, at_least: int) -> None:
    keys = [draw(number, length, alphabet) for number in range(500)]
    found = sum(redact(["run", key]) == ["run", MASK] for key in keys)
    assert found >= at_least * 5


@given(st.binary(min_size=16, max_size=32))
def test_digests_uuids_and_path_parts_of_chance_stay(raw: bytes) -> None:
    digest = hashlib.sha256(raw).hexdigest()
    chance = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    uuid = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    words = [
        digest, digest.upper(), digest[:40], f"sha256:{digest}", f"sha256-{digest}", uuid, f"GPU-{uuid}", f"--id={uuid}",
        f"/nix/store/{draw(raw[0], 32, 'abcdfghijklmnpqrsvwxyz0123456789')}-python3/bin/python", f"/tmp/{chance}/sock",
        f"C:\\tmp\\{draw(raw[1], 24, string.ascii_letters)}", f"{draw(raw[2], 28, string.ascii_letters)}.safetensors",
    ]  # fmt: skip
    assert redact(words) == words


@pytest.mark.parametrize(
    "word",
    [
        "/tmp/eyJAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/sock",
        "--model=/data/hf_checkpoints2025nightly/x",
        "~/hf_aB3dE6gH9jK2mN5pQ8",
    ],
)
def test_a_path_part_that_begins_like_a_key_is_no_key(word: str) -> None:
    assert redact(["run", word]) == ["run", word]


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("--hf-token", True), ("--max-tokens", False), ("--tokenizer", False), ("--eos-token", False),
        ("--stop-token-ids", False), ("add_bos_token", False), ("tokenizer.ggml.eos_token", False),
        ("--key", True), ("--sort-key", False), ("--master-key", True), ("--ssl-keyfile", False), ("--hotkey", False),
        ("--password-store", False), ("--password", True), ("--no-password", False), ("--auth-mode", False),
        ("--author", False), ("--gradio-auth", True), ("PWD", False), ("OLDPWD", False), ("DB_PWD", True),
        ("--secrets-file", False), ("AWS_ACCESS_KEY_ID", False), ("--pass", True), ("--bypass", False), ("", False),
    ],
)  # fmt: skip
def test_names_of_secrets_and_names_like_them(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


@pytest.mark.parametrize(
    "run", ["NetworkServiceInProcess2", "Mixtral8x7BInstructv01GPTQ", "TouchpadOverscrollHistoryNavigation"]
)
def test_names_of_joined_words_are_not_chance(run: str) -> None:
    assert not is_random(run)
