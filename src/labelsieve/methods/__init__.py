"""One file per method. Here the names of the cleaners, for whoever needs no more than names and starts without torch."""

MIXTURES = ("gmm-agn", "gmm-awr")  # these divide by the mixture alone; one of your own may be called gmm-more
PROTOTYPES = ("cpc-agn", "cpc-awr")  # and these by prototypes that it teaches
CLEANERS = (*MIXTURES, *PROTOTYPES, "contrastive")
