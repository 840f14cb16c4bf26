"""Weak and strong views of whole batches of pictures, uint8 (M, C, H, W), or of vectors, float32 (M, D).

`strong.views_for` and `vectors.vector_views` give both kinds. A view is drawn on the host (`draw`: random numbers for each
picture) and applied on any device without waiting for it (`apply`), so one seed gives the same views everywhere.
"""
