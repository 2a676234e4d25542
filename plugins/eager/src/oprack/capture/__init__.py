"""Functions of tensors written down as programs: `oprack.to_program` and `oprack.jit`."""
