"""What pages are made of. Nothing here knows a page; a part that two pages need moves here.

page.py     a page, and one visit of it: whose, what it may ask
frame.py    what stands around every page: menu, heading, who is logged in
live.py     the one loop that keeps an open page fresh
panel.py    a piece of a page that loads, is empty, shows something or says why it cannot
table.py    rows, a page at a time, sorted and filtered by the service
words.py    how numbers, states and spans of time are said
acting.py   asking before, telling after: confirm, act, notify
inputs.py   buttons, fields, choices with labels
*.js        the browser's half of a part, plain Vue components
"""
