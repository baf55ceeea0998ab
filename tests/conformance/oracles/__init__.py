"""Programs that know the answer: the real thing, asked for what the tests replay offline."""
