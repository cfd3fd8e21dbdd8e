-- The server replaces 0 by the next id.
INSERT INTO sbtestN (id, k, c, pad) VALUES (0, :k1, :c1, :pad1);
