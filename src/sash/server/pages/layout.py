"""The style and frame of the API reference.

It loads no file and runs no script, so it works in a home without internet.
"""

HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}

_STYLE = """
:root {
  color-scheme: light dark;
  --ink: #20262c; --dim: #5a6570; --paper: #faf9f6; --card: #ffffff; --line: #e2dfd7; --shade: #f1efe8;
  --accent: #a34a20; --get: #1d7548; --post: #2259a8; --patch: #845500; --delete: #b0251d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e2dc; --dim: #a0a8b0; --paper: #14171a; --card: #1b1f23; --line: #30363c; --shade: #22272c;
    --accent: #f2a477; --get: #7ccfa2; --post: #8fb9f2; --patch: #e3ba66; --delete: #f3958c;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 system-ui, sans-serif; }
a { color: var(--accent); text-underline-offset: .2em; text-decoration-thickness: 1px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
h1, h2, h3, h4 { line-height: 1.25; font-weight: 600; margin: 0; }
p { margin: .5rem 0; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .875em; }
code { background: var(--shade); border-radius: .25rem; padding: .1em .3em; overflow-wrap: anywhere; }
pre { background: var(--shade); border: 1px solid var(--line); border-radius: .5rem; margin: .6rem 0;
  padding: .7rem .9rem; overflow-x: auto; line-height: 1.5; }
pre code { background: none; padding: 0; font-size: inherit; overflow-wrap: normal; }
.copy { -webkit-user-select: all; user-select: all; }
.dim { color: var(--dim); }
.brand { display: flex; align-items: center; gap: .7rem; }
.brand svg { width: 2.1rem; height: 2.1rem; flex: none; color: var(--accent); }
.brand h1 { font-size: 1.9rem; letter-spacing: -.01em; }
.brand a { color: inherit; text-decoration: none; }

.docs { max-width: 76rem; margin: 0 auto; padding: 1.8rem 1.25rem 4rem; }
.docs nav { font-size: .9rem; margin: 1.5rem 0; }
.docs nav ul { margin: 0; padding: 0; list-style: none; }
.docs nav > ul > li { margin-top: .5rem; }
.docs nav li li { display: inline-block; margin-right: .9rem; }
.docs nav a { display: inline-block; padding: .15rem 0; color: var(--dim); text-decoration: none; }
.docs nav a:hover { color: var(--accent); }
.docs nav > ul > li > a { font-weight: 600; color: var(--ink); }
.docs nav .badge { display: none; }
.docs section > h2 { margin-top: 3rem; padding-bottom: .4rem; border-bottom: 1px solid var(--line);
  font-size: 1.5rem; }
#introduction h3 { margin-top: 1.6rem; }
article { margin-top: 1.1rem; background: var(--card); border: 1px solid var(--line); border-radius: .7rem;
  padding: 1rem 1.2rem; min-width: 0; }
article:target { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
article h3 { font-size: 1.1rem; }
article h3 a { color: inherit; text-decoration: none; }
article h3 a:hover { text-decoration: underline; }
article .route { margin: .35rem 0; display: flex; gap: .6rem; align-items: baseline; }
article .route code { background: none; padding: 0; font-size: .95rem; }
.badge { flex: none; background: var(--get); color: var(--card); border-radius: .3rem; padding: .1rem .45rem;
  font: 600 .72rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; text-transform: uppercase; }
.badge.post { background: var(--post); }
.badge.put, .badge.patch { background: var(--patch); }
.badge.delete { background: var(--delete); }
details { border-top: 1px solid var(--line); margin-top: .6rem; padding-top: .5rem; }
details + details { margin-top: .5rem; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
summary .dim { font-weight: 400; font-size: .9rem; margin-left: .3rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; font-size: .94rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .8rem .45rem 0;
  border-top: 1px solid var(--line); }
tr:first-child > th, tr:first-child > td { border-top: 0; }
th { font-weight: 400; width: 34%; min-width: 6.5rem; overflow-wrap: anywhere; }
th small, td small { display: block; color: var(--dim); font-size: .82rem; }
table.codes { table-layout: fixed; }
table.codes th { width: 4rem; min-width: 0; }
td p { margin: .2rem 0 0; }
td > p:first-child { margin-top: 0; }

@media (max-width: 36rem) {
  article table:not(.codes) :is(th, td) { display: block; width: auto; padding: .1rem 0; }
  article table:not(.codes) tr { display: block; padding: .4rem 0; border-top: 1px solid var(--line); }
  article table:not(.codes) :is(th, td) { border: 0; }
  th small { display: inline; margin-left: .5rem; }
}
@media (min-width: 62rem) {
  .docs { display: grid; grid-template-columns: 16rem minmax(0, 1fr); column-gap: 3rem; padding-top: 2.5rem; }
  .docs > header { grid-column: 2; }
  .docs nav { grid-column: 1; grid-row: 1 / span 2; position: sticky; top: 0; align-self: start;
    max-height: 100vh; margin: -1rem 0 0; padding: 1rem .5rem 2rem 0; overflow-y: auto; }
  .docs nav > ul > li { margin-top: .9rem; }
  .docs nav li li { display: block; margin: 0; }
  .docs nav li li a { display: flex; gap: .5rem; align-items: center; padding: .12rem 0; }
  .docs nav .badge { display: block; width: 3.2rem; padding: 0; font-size: .62rem; text-align: center; }
}
@media print { .docs nav { display: none; } article { break-inside: avoid; } }
"""

# A sash window, whose lower half slides.
LOGO = """<svg viewBox="0 0 32 32" fill="none" stroke="currentColor" stroke-width="2.5" aria-hidden="true">
<rect x="5" y="3" width="22" height="26" rx="2"/><path d="M5 13h22M16 3v10M5 18h22M16 18v11"/></svg>"""


def render_page(title: str, css_class: str, body: str) -> str:
    """Return a complete HTML page. `title` and `body` are HTML."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body class="{css_class}">
{body}
</body>
</html>
"""
