INSERT INTO sbtestN (k, c, pad) VALUES (:k1, :c1, :pad1);
