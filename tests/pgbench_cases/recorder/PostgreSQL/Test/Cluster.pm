# Takes the place of PostgreSQL's module of this name: no server is started; what one would get is recorded.
package PostgreSQL::Test::Cluster;
use strict;
use warnings;
use File::Temp;
use PostgreSQL::Test::Utils;

sub new
{
	my ($class) = @_;
	return bless { directory => File::Temp::tempdir(CLEANUP => 1) }, $class;
}

sub init { return }
sub start { return }
sub stop { return }
sub reload { return }
sub basedir { return $_[0]->{directory} }
sub logfile { return '/dev/null' }

sub safe_psql
{
	my ($self, $database, $sql) = @_;
	PostgreSQL::Test::Utils::record(kind => 'sql', database => $database, text => $sql);
	return '';
}

# Asked for what the runs before left: of nothing, nothing. Its checks are not cases of pgbench.
sub psql { return (0, '', '') }

sub append_conf
{
	my ($self, $file, $text) = @_;
	PostgreSQL::Test::Utils::record(kind => 'settings', text => $text);
	return;
}

sub pgbench
{
	my ($self, $options, $status, $out, $err, $name, $files, @more) = @_;
	my @command = ('pgbench', split(/\s+/, $options));
	for my $key (sort keys %{ $files // {} })
	{
		push @command, '-f', $self->basedir . "/$key";
		(my $path = $self->basedir . "/$key") =~ s/\@\d+$//;
		PostgreSQL::Test::Utils::append_to_file($path, $files->{$key});
	}
	PostgreSQL::Test::Utils::command_checks_all([ @command, @more ], $status, $out, $err, $name);
	return;
}

1;
