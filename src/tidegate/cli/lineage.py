"""What `tree` and `trace` do and say."""

from __future__ import annotations

import sys

from tidegate.cli import options
from tidegate.cli.asking import in_found, pointed_of
from tidegate.cli.consent import say_target
from tidegate.cli.doing import Doing
from tidegate.cli.naming import find_families
from tidegate.cli.saying import note
from tidegate.cli.unit_options import Given
from tidegate.cli.window import room_on
from tidegate.flows.entering import Found
from tidegate.flows.lineage import read_lineage, trace_object
from tidegate.flows.living_trees import LivingTrees
from tidegate.flows.named import find_named
from tidegate.flows.session import Session
from tidegate.flows.weakness import findings_of
from tidegate.report.lineage import (
    TraceBlock,
    TreeNode,
    trace_document,
    trace_lines,
    tree_document,
    tree_lines,
)


def show_tree(kind: str, called: str, told: Given, doing: Doing, *, compact: bool) -> int:
    """What a unit brings, by Git; or has brought, by the cluster that is chosen."""
    (named,) = find_named(find_families(told["place"], told), (kind,), (called,), home=told["home"])
    told["sandbox"] = told["still"] = not _is_chosen(told)

    async def ask(session: Session, found: Found) -> tuple[list[TreeNode], Found]:
        lineages = await read_lineage(found, session)
        mine = [one for one in lineages if named.id in one.units][:1]
        if told["sandbox"]:
            return [one.tree(named.id, compact=compact) for one in mine], found
        trees = (LivingTrees(one, session, compact) for one in mine)
        return [await one.draw(named.id) for one in trees], found

    nodes, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    if told["sandbox"]:
        note("this is what Git says; with --context it is what the cluster has")
    else:
        say_target(told)
    lines = (line for node in nodes for line in tree_lines(node))
    options.show(told["output"], map(tree_document, nodes), lines)
    return options.say_findings(findings_of(found))


def _is_chosen(told: Given) -> bool:
    """Whether somebody names a cluster; who does not means Git."""
    chosen = (told["context"], told["kubeconfig"], told["clusters"] or None)
    return any(one is not None for one in chosen)


def show_trace(kind: str, called: str, told: Given, doing: Doing) -> int:
    """Where an object comes from. Gives the exit code."""
    told["sandbox"] = told["still"] = not _is_chosen(told)

    async def ask(session: Session, found: Found) -> tuple[list[TraceBlock], Found]:
        lineages = await read_lineage(found, session)
        return await trace_object(lineages, kind, called, told["home"], session), found

    blocks, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    options.show(told["output"], [trace_document(blocks)], trace_lines(blocks, room_on(sys.stdout)))
    return options.say_findings(findings_of(found))
