"""The page's style sheet, as text: colours for light, dark and paper, then type, tables, charts and pictures.

It names no font file and no address; every text colour has a contrast of at least 4.5 to 1 on its ground.
"""

_LIGHT = """
  --ground: #fcfbf9; --card: #ffffff; --ink: #1c2229; --muted: #56606b; --rule: #dcdcd8; --wash: #f0efeb;
  --s0: #0a62a4; --s1: #b54708; --s2: #007055; --s3: #8f3f87; --s4: #6e5c00; --s5: #424d59;
"""

_DARK = """
  --ground: #14181d; --card: #1b2127; --ink: #e6e9ed; --muted: #a3aeb9; --rule: #333b44; --wash: #20272e;
  --s0: #6cb6f2; --s1: #ff9c5b; --s2: #48cfa4; --s3: #e59cdb; --s4: #dcc75c; --s5: #bac4ce;
"""

_THEMES = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
@media print {{ :root {{ color-scheme: light; {_LIGHT} --ground: #ffffff; }} }}
"""

_TYPE = """
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink); overflow-wrap: break-word;
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial,
  sans-serif; }
.sheet { max-width: 48rem; margin: 0 auto; padding: clamp(1.5rem, 6vw, 4rem) 1rem 3rem; }
h1 { margin: 0 0 .6rem; font-size: clamp(1.6rem, 5vw, 2.3rem); line-height: 1.18; letter-spacing: -.018em;
  font-weight: 680; text-wrap: balance; }
h2 { margin: 0 0 .6rem; font-size: 1.22rem; line-height: 1.3; letter-spacing: -.008em; font-weight: 650; }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; line-height: 1.35; font-weight: 620; overflow-wrap: anywhere; }
h3 small { color: var(--muted); font-weight: 400; font-size: .89rem; }
p, ol, ul { margin: 0 0 .9rem; max-width: 41rem; }
ol, ul { padding-left: 1.3rem; }
li { margin-bottom: .4rem; }
pre { margin: 0 0 .9rem; padding: .7rem .9rem; background: var(--wash); border-radius: .5rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font: .87rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.lead { color: var(--muted); font-size: 1.1rem; line-height: 1.5; }
.sentence { font-size: 1.22rem; line-height: 1.5; text-wrap: pretty; }
.caution { border-left: 4px solid #c2410c; padding: .1rem 0 .1rem .8rem; max-width: 46rem; }
.note, figcaption, footer { color: var(--muted); font-size: .89rem; line-height: 1.5; }
section { margin-top: 2.75rem; padding-top: 1.6rem; border-top: 1px solid var(--rule); }
header + section { margin-top: 1.8rem; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
"""

_PARTS = """
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.3rem 0 0; }
.facts div { flex: 1 1 10rem; display: flex; flex-direction: column-reverse; justify-content: flex-end; padding: .85rem 1rem;
  background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; }
.facts dd { margin: 0; white-space: nowrap; font-size: 1.75rem; line-height: 1.2; font-weight: 650; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; }
.facts dt { color: var(--muted); font-size: .89rem; line-height: 1.4; }
table { width: 100%; border-collapse: collapse; margin: 0 0 .9rem; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; margin: 0 0 .6rem; color: var(--s0); }
.facts + table, .facts + p { margin-top: 1.1rem; }
caption { text-align: left; color: var(--muted); font-size: .89rem; padding-bottom: .4rem; }
th, td { padding: .5rem .75rem; text-align: right; vertical-align: baseline;
  border-bottom: 1px solid var(--rule); }
thead th { vertical-align: bottom; color: var(--muted); font-size: .84rem; line-height: 1.35;
  font-weight: 550; border-bottom: 1.5px solid var(--muted); }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
th.words, td.words, tbody th { text-align: left; }
tbody th { font-weight: 500; min-width: 8.5rem; overflow-wrap: anywhere; }
tr.strong th, tr.strong td { font-weight: 680; }
td.words { overflow-wrap: anywhere; }
"""

_CHARTS = """
figure { margin: 0 0 .9rem; }
figcaption { margin-top: .6rem; max-width: 41rem; }
.chart { display: block; max-width: 100%; height: auto; overflow: visible; font-family: inherit; }
.chart + .chart { display: none; }
.scroll { overflow-x: auto; }
.scroll .chart { max-width: none; }
.chart text { fill: var(--ink); font-variant-numeric: tabular-nums; }
.chart .small, .chart .tick, .chart .muted { fill: var(--muted); }
.chart .head { font-weight: 620; }
.s0 { --tone: var(--s0); } .s1 { --tone: var(--s1); } .s2 { --tone: var(--s2); }
.s3 { --tone: var(--s3); } .s4 { --tone: var(--s4); } .s5 { --tone: var(--s5); }
.chart .end { fill: var(--tone); font-weight: 600; }
.line, .stairs { fill: none; stroke: var(--tone); stroke-width: 2; stroke-linejoin: round; }
.stairs { fill: var(--tone); fill-opacity: .24; stroke-width: 1.5; }
.mark { fill: var(--tone); stroke: var(--ground); stroke-width: 1; }
.leader { stroke: var(--tone); stroke-width: 1; opacity: .55; }
.grid { stroke: var(--rule); } .axis { stroke: var(--muted); }
.band { fill: var(--ink); opacity: .055; } .band.b1 { opacity: .1; }
.bar { fill: var(--tone); fill-opacity: .8; } .area { fill: var(--tone); }
.cell { fill: var(--s0); } .cell.none { fill: var(--wash); }
.diagonal { fill: var(--rule); }
.cell.same { fill: none; stroke: var(--rule); }
.chart .count.strong { fill: var(--ground); font-weight: 600; }
"""

_DOTS = """
.dots .chart { width: 100%; max-width: 44rem; background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; }
.dots path { fill: none; } .dots .edge { stroke: var(--ink); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; margin: .7rem 0; padding: 0; max-width: 44rem;
  font-size: .89rem; }
.key li { display: flex; align-items: center; gap: .4rem; margin: 0; }
.key i { width: .8rem; height: .8rem; border-radius: .15rem; flex: none; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
.gallery .pair { display: grid; grid-template-columns: 1fr 1fr; gap: .3rem; }
.gallery.wide { grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); }
.gallery p { margin: .35rem 0 0; overflow-wrap: anywhere; }
"""

_PICTURES = """
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.9rem, 1fr)); gap: .6rem;
  margin: 0; padding: 0; max-width: none; list-style: none; }
.gallery > li { display: flex; flex-direction: column; margin: 0; padding: .5rem; background: var(--card);
  border: 1px solid var(--rule); border-radius: .5rem; font-size: .8rem; line-height: 1.4; min-width: 0; }
.picture { display: block; width: 100%; height: auto; aspect-ratio: 1; object-fit: contain;
  border-radius: .25rem; background: var(--wash); }
.tiny { image-rendering: pixelated; }
.gallery dl { margin: .5rem 0 .35rem; }
.gallery dl div { display: flex; flex-wrap: wrap; justify-content: space-between; column-gap: .5rem; }
.gallery dt { color: var(--muted); }
.gallery dd { margin: 0 0 0 auto; text-align: right; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
.gallery .suggested { font-weight: 680; }
.gallery .verdict { margin: auto 0 0; font-weight: 600; color: var(--s2); }
.gallery .verdict.miss { color: var(--s1); }
.gallery .id { margin: 0; color: var(--muted); font-size: .74rem; overflow-wrap: anywhere; }
"""

# Charts come twice, drawn for two widths: text in a drawing that is merely shrunk cannot be read on a phone.
_NARROW = """
@media screen and (max-width: 36rem) {
  .chart:has(+ .chart) { display: none; }
  .chart + .chart { display: block; }
  .stack thead { display: none; }
  .stack, .stack tbody, .stack tr, .stack th, .stack td { display: block; border: 0; padding: 0; }
  .stack tr { padding: .6rem 0; border-bottom: 1px solid var(--rule); }
  .stack tbody th { font-weight: 650; }
  .stack tbody th[data-label]::before { content: attr(data-label) ": "; color: var(--muted); font-weight: 400; }
  .stack td { display: flex; justify-content: space-between; gap: 1rem; }
  .stack td::before { content: attr(data-label); flex: 0 0 auto; max-width: 55%; color: var(--muted); font-weight: 400;
    text-align: left; }
}
"""

_PRINT = """
@page { margin: 16mm; }
@media print {
  html { font-size: 85%; }
  .facts { grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); }
  .sheet { max-width: none; padding: 0; }
  section { margin-top: 1.4rem; padding-top: 1rem; }
  h2, h3, h2 + p { break-after: avoid; }
  .scroll { overflow: visible; }
  .scroll .chart { max-width: 100%; max-height: 240mm; }
  figure, tr, .facts, .gallery > li { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; block-size: auto; }
  summary { list-style: none; color: var(--ink); }
  .gallery { grid-template-columns: repeat(6, 1fr); gap: .4rem; }
  .gallery > li { font-size: .74rem; }
  .gallery .id { font-size: .66rem; }
  .stairs, .bar, .band, .area, .cell, .diagonal, .mark, .picture {
    print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

# Older browsers open no closed fold on paper, by no style: there the paper says that something is missing.
_OLDER = """
@supports not selector(::details-content) {
  @media print { details:not([open]) > summary::after { content: " (open this before printing)"; color: var(--muted); } }
}
"""

STYLE = "".join((_THEMES, _TYPE, _PARTS, _CHARTS, _DOTS, _PICTURES, _NARROW, _PRINT, _OLDER)).strip()
