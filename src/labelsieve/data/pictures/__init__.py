"""Your own pictures: a path in any common layout goes in, a `Collection` and a list of what was left out come out.

`recognise` says what lies at a path, `open_pictures` (in `opening`) makes it ready. Only `opening` needs torch.
"""
