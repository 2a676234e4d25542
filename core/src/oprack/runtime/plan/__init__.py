"""The prepared plan: ops in a row compiled into one generated Python function with every choice already made."""
