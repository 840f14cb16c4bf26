"""Your own pictures, in any common layout: a `Collection`, and a list of what was left out.

`recognise` says what lies at a path, `open_pictures` (in `opening`) makes it ready. Only `opening` needs torch.
"""
