"""`--schema`: the JSON Schema files that the package ships."""

from __future__ import annotations

from gpusnap.cli.io import write_out


def print_schema(name: str, output: str | None = None) -> None:
    """snapshot | diff | explanation | summary"""
    from importlib.resources import files

    write_out(files("gpusnap.schema").joinpath(f"{name}.json").read_bytes(), output)
