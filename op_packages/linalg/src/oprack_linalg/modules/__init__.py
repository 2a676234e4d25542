"""Modules of this pack, found as oprack.nn.<name>: parts of networks for eager calls."""
