"""Dependency graph as a single HTML page with the diagram, the problems and a search."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tidegate.model.views.graph import GraphView
from tidegate.report.graph.layout import Diagram
from tidegate.report.graph.svg import svg_lines
from tidegate.report.graph.text import critical_path_lines, cycle_lines, missing_lines

STYLE = """\
:root{color-scheme:light dark}
body{margin:0;font:14px/1.45 ui-sans-serif,system-ui,sans-serif;background:Canvas;color:CanvasText}
header{padding:12px 24px;display:flex;gap:24px;align-items:baseline;flex-wrap:wrap;
border-bottom:1px solid color-mix(in srgb,CanvasText 20%,Canvas)}
h1{font-size:16px;margin:0}h2{font-size:14px;margin:16px 0 4px}
input{font:inherit;padding:4px 8px;min-width:220px}
.map{overflow:auto}section{padding:0 24px 24px}pre{white-space:pre-wrap;margin:0;font-size:12px}
.dim .unit,.dim .tie,.dim .label{opacity:.18}
.dim .near,.dim .near *{opacity:1}
.key{color:color-mix(in srgb,CanvasText 65%,Canvas)}
"""
SCRIPT = """\
const svg=document.querySelector('svg'),find=document.querySelector('input');
const ties=[...svg.querySelectorAll('path.tie')];
const home=key=>key.split('n')[0];
function show(keys){
  svg.querySelectorAll('.near').forEach(e=>e.classList.remove('near'));
  svg.classList.toggle('dim',keys!==null);
  if(keys===null)return;
  const near=new Set(keys.map(home));
  for(const tie of ties){
    const ends=[tie.dataset.before,tie.dataset.after];
    if(ends.some(e=>keys.includes(e)||keys.includes(home(e)))){
      tie.classList.add('near');ends.forEach(e=>near.add(home(e)));
    }
  }
  svg.querySelectorAll('.unit').forEach(u=>u.classList.toggle('near',near.has(u.dataset.key)));
}
svg.addEventListener('click',event=>{
  const hit=event.target.closest('[data-key]');
  show(hit?[hit.dataset.key]:null);
});
find.addEventListener('input',()=>{
  const word=find.value.trim().toLowerCase();
  if(!word)return show(null);
  show([...svg.querySelectorAll('[data-key]')]
    .filter(e=>e.querySelector('title').textContent.toLowerCase().includes(word))
    .map(e=>e.dataset.key));
});
document.addEventListener('keydown',event=>{if(event.key==='Escape'){find.value='';show(null);}});
"""


def html_lines(view: GraphView, diagram: Diagram) -> Iterator[str]:
    """Yield a page without external resources."""
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield "<title>Tidegate: dependency graph</title>"
    yield f"<style>{STYLE}</style></head><body>"
    objects = sum(len(item.nodes) for box in diagram.boxes for item in box.items)
    summary = (
        f"{len(diagram.boxes):,} box{'' if len(diagram.boxes) == 1 else 'es'}, {objects:,} objects"
    )
    yield f"<header><h1>Dependency graph</h1><span class=key>{summary}</span>"
    yield '<label>find <input type="search" placeholder="unit, kind or name"></label>'
    yield "<span class=key>click a box or a line to highlight its dependencies; Escape resets"
    yield "</span></header>"
    yield '<div class="map">'
    yield from svg_lines(diagram)
    yield "</div><section>"
    parts = (
        ("Dependency cycles", cycle_lines(view.cycles)),
        ("Not in this repository", missing_lines(view.missing)),
        ("Critical path", critical_path_lines(view.graph, view.critical_path or ())),
    )
    for title, lines in parts:
        text = "\n".join(lines)
        if text:
            yield f"<h2>{escape(title)}</h2><pre>{escape(text)}</pre>"
    yield f"</section><script>{SCRIPT}</script></body></html>"
