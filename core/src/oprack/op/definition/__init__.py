"""How an op is defined: a class for it (OpDef), one derived from it for its gradient (GradOpDef), or call by call."""
