-- The server replaces the id 0 with the next generated id.
INSERT INTO sbtestN (id, k, c, pad) VALUES (0, :k1, :c1, :pad1);
