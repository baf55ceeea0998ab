"""What `tree` and `trace` do and say."""

from __future__ import annotations

from tidegate.cli import options
from tidegate.cli.asking import in_found, pointed_of
from tidegate.cli.doing import Doing
from tidegate.cli.naming import find_families
from tidegate.cli.unit_options import Given
from tidegate.flows.entering import Found
from tidegate.flows.lineage import read_lineage, trace_object
from tidegate.flows.named import find_named
from tidegate.flows.session import Session
from tidegate.report.lineage import (
    TraceBlock,
    TreeNode,
    trace_document,
    trace_lines,
    tree_document,
    tree_lines,
)


def show_tree(kind: str, called: str, told: Given, doing: Doing, *, compact: bool) -> int:
    """What a unit brings. Gives the exit code."""
    (named,) = find_named(find_families(told["place"], told), (kind,), (called,))

    async def ask(session: Session, found: Found) -> tuple[list[TreeNode], Found]:
        lineages = await read_lineage(found, session)
        mine = [one for one in lineages if named.id in one.units]
        return [one.tree(named.id, compact=compact) for one in mine[:1]], found

    told["sandbox"] = told["still"] = True
    nodes, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    lines = (line for node in nodes for line in tree_lines(node))
    options.show(told["output"], map(tree_document, nodes), lines)
    return options.say_findings(found.findings)


def show_trace(kind: str, called: str, told: Given, doing: Doing) -> int:
    """Where an object comes from. Gives the exit code."""
    chosen = (told["context"], told["kubeconfig"], told["clusters"] or None)
    told["sandbox"] = told["still"] = all(one is None for one in chosen)

    async def ask(session: Session, found: Found) -> tuple[list[TraceBlock], Found]:
        lineages = await read_lineage(found, session)
        return await trace_object(lineages, kind, called, told["home"], session), found

    blocks, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    options.show(told["output"], [trace_document(blocks)], trace_lines(blocks))
    return options.say_findings(found.findings)
