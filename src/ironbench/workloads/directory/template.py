"""What the entries of a directory look like where nobody says: people (tags: crates/ironbench-data/src/entries.rs)."""

DEFAULT = """\
objectClass: top
objectClass: person
objectClass: organizationalPerson
objectClass: inetOrgPerson
uid: user.<number>
givenName: <first>
sn: <last>
cn: {givenName} {sn}
initials: {givenName:1}{sn:1}
employeeNumber: <number>
mail: user.<number>@example.com
userPassword: <password>
telephoneNumber: <random:telephone>
homePhone: <random:telephone>
pager: <random:telephone>
mobile: <random:telephone>
street: <random:numeric:1:9999> <list:Mill Lane,Station Road,High Street,Church Walk,Harbour View,Orchard Way>
l: <list:Ashford,Birkdale,Calder,Dunmore,Elmstead,Fairlight,Glenholm,Hartwell,Ivybrook,Kelmarsh>
st: <list:North,South,East,West>
postalCode: <random:digits:5>
postalAddress: {cn}${street}${l} {postalCode}
description: <random:alpha:80>
"""
PASSWORD = "password"
"""Of every entry that ironbench makes: nobody's."""
