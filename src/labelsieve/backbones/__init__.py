"""Pretrained networks (backbones): their weights, what they want to see, and the features they give."""
