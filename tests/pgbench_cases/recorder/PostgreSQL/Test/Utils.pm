# Takes the place of PostgreSQL's module of this name: runs nothing, and writes what would be run as one JSON line each.
package PostgreSQL::Test::Utils;
use strict;
use warnings;
use Encode ();
use Exporter 'import';
use File::Temp;
use JSON::PP;

our @EXPORT = qw(append_to_file slurp_file command_checks_all run_log);
our $tmp_check = File::Temp::tempdir(CLEANUP => 1);

my $json = JSON::PP->new->utf8->canonical;
open(my $out, '>&', \*STDOUT) or die "standard output: $!";
# What the files themselves print is not ours to read.
open(STDOUT, '>', '/dev/null') or die "/dev/null: $!";

sub record
{
	my (%entry) = @_;
	print $out $json->encode(\%entry), "\n";
	return;
}

sub append_to_file
{
	my ($path, $text) = @_;
	open(my $file, '>>', $path) or die "$path: $!";
	print $file $text;
	close($file) or die "$path: $!";
	return;
}

# Log files of servers that were never started: nothing is in them.
sub slurp_file { return '' }

sub run_log
{
	my ($command, %to) = @_;
	${ $to{'2>'} } = '' if $to{'2>'};
	return 1;
}

sub command_checks_all
{
	my ($command, $status, $out_like, $err_like, $name) = @_;
	my ($program, @arguments) = @$command;
	my %scripts;
	for my $at (grep { $arguments[ $_ - 1 ] eq '-f' } 1 .. $#arguments)
	{
		(my $path = $arguments[$at]) =~ s/\@\d+$//;
		next unless open(my $file, '<:raw', $path);
		local $/;
		$scripts{$path} = Encode::decode('UTF-8', <$file> // '');
		close $file;
	}
	record(
		kind => 'case',
		name => $name,
		arguments => \@arguments,
		status => $status,
		stdout => [ map { "$_" } @$out_like ],
		stderr => [ map { "$_" } @$err_like ],
		scripts => \%scripts,
		pgoptions => $ENV{PGOPTIONS} // '');
	return;
}

1;
