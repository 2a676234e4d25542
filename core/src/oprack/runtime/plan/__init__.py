"""The prepared plan: consecutive ops become one generated Python function in which every choice is made."""
