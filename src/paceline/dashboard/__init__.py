"""The dashboard: the fleet in a browser, for operators. Its own process, on port 8080.

Belongs here: pages, what they are made of, and the door in front of them. Does not belong here: anything a service
knows or decides. It asks the three services over HTTP with the key its visitor came with, like any other client, and
keeps nothing but who is logged in, in memory.

    visitors.py   who is logged in: a random cookie here, the key and what it may do there
    door.py       login and logout, plain pages without NiceGUI
    guarding.py   what every request passes: cookie, Origin, headers
    app.py        the pages behind that door
    main.py       the process
    pages/        one module a page, all named in one list
    parts/        what pages are made of: frame, live refresh, tables, times, charts, dialogs
    static/       style and the two scripts that need no server
"""
