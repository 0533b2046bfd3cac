"""The cheap lists of leaves against the document's types."""

from __future__ import annotations

import typing

from gpusnap import fields, model


def leaves_of(row: type, prefix: str = "") -> list[str]:
    """Dotted leaves of a TypedDict, nested TypedDicts opened."""
    found: list[str] = []
    for name, kind in typing.get_type_hints(row).items():
        if isinstance(kind, type) and typing.is_typeddict(kind):
            found += leaves_of(kind, f"{prefix}{name}.")
        else:
            found.append(prefix + name)
    return found


def test_adapter_leaves_are_those_of_the_type() -> None:
    groups = [f"{group}.{leaf}" for group, names in fields.ADAPTER_GROUPS.items() for leaf in names]
    typed = [leaf for leaf in leaves_of(model.Adapter) if leaf.split(".")[0] in fields.ADAPTER_GROUPS]
    assert groups == typed
    assert set(fields.ADAPTER_FIGURES) == set(groups) - {"memory.kind"}


def test_accounting_leaves_are_those_of_the_type() -> None:
    typed = leaves_of(model.Accounting)
    assert typed == [*fields.ACCOUNTING, *(f"by_category.{name}" for name in fields.CATEGORIES)]
    assert set(typing.get_args(model.Category)) == set(fields.CATEGORIES)


def test_process_leaves_are_those_of_the_type() -> None:
    typed = set(leaves_of(model.Process))
    always = {"adapter", "pid", "pid_namespace", "self", "category", "provenance"}
    named = {*fields.PROCESS_FIGURES, *fields.PROCESS_TEXTS, *fields.PROCESS_IDENTITY}
    assert named | always == typed
    assert [*typing.get_type_hints(model.Process)] == list(fields.PROCESS_KEYS)
    assert [*leaves_of(model.Engines)] == list(fields.ENGINES)


def test_model_and_llm_leaves_are_those_of_the_types() -> None:
    assert {*fields.MODEL_FIGURES, *fields.MODEL_TEXTS} == set(leaves_of(model.ModelFacts))
    assert {*fields.LLM_FIGURES, *fields.LLM_TEXTS} == set(leaves_of(model.LlmFacts))
