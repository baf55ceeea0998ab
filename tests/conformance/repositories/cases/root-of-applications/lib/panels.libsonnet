{
  grid(rows):: { rows: [{ title: 'row %d' % n, height: 8 } for n in std.range(1, rows)] },
}
