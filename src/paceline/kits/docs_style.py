"""How `/docs` looks: one sheet inside the page, light and dark by what the reader's system asks for."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --line: #dfe4ea; --page: #fbfcfd; --card: #fff;
  --well: #f3f5f8; --accent: #0b6e5f; --get: #1f5fa8; --post: #0b6e5f; --delete: #a63a2e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa6b4; --line: #2b333d; --page: #12161b;
  --card: #191f26; --well: #11161b; --accent: #5cc7b2; --get: #7db4ee; --post: #5cc7b2; --delete: #f0948a; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
a { color: var(--accent); } code, pre { font-family: ui-monospace, monospace; }
code { font-size: .875em; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0 0; }
details { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; }
summary { cursor: pointer; padding: .6rem .9rem; display: flex; gap: .75rem; flex-wrap: wrap; align-items: baseline; }
summary:focus-visible, pre:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.inside { border-top: 1px solid var(--line); padding: .75rem .9rem 1rem; }
.method { font-weight: 650; min-width: 3.6rem; color: var(--accent); }
.get { color: var(--get); } .post { color: var(--post); } .delete { color: var(--delete); }
.types { font-size: .925rem; }
.errors { background: none; margin: 1.25rem 0 0; } .errors > summary { padding: .45rem .9rem; font-size: .925rem; }
.wide { overflow-x: auto; }
h3 { font-size: .8rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); margin: 1.25rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; font-size: .925rem; }
td { border-top: 1px solid var(--line); padding: .35rem .9rem .35rem 0; vertical-align: top; }
tr:first-child td { border-top: 0; }
.c3 td:nth-child(1) { width: 24%; min-width: 9rem; }
.c3 td:nth-child(2) { width: 22%; min-width: 7rem; color: var(--soft); }
.errors .c3 td:nth-child(1) { width: 3.5rem; min-width: 3.5rem; color: var(--soft); }
.errors .c3 td:nth-child(2) { width: 15rem; color: inherit; } .c2 td:nth-child(1) { width: 30%; }
.one { color: var(--soft); font-size: .8rem; }
figure { margin: .6rem 0 0; } figcaption { font-size: .85rem; margin-bottom: .2rem; }
pre { margin: 0; padding: .75rem .9rem; background: var(--well); border: 1px solid var(--line); border-radius: .4rem;
  font-size: .8125rem; line-height: 1.5; overflow: auto; max-height: 34rem; }
"""
