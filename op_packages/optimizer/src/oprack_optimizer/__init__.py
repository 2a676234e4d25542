"""Update rules of training for oprack."""
