package main

import "testing"

func TestAnIPv6AddressWithoutBracketsIsSeen(t *testing.T) {
	for where, bare := range map[string]bool{
		"//::1:7717": true, "//::1": true, "//joe:pw@::1:7717/2": true, "//a,fe80::1:6379": true, "//jo@e:pw@::1:1": true,
		"//[::1]:7717": false, "//[::1]": false, "//host:7717": false, "//joe:p:w@host:1/x": false, "//a:1,b:2,c:3": false,
		"//10.0.0.7:6379": false, "/var/a:b:c": false, "": false, "//": false,
	} {
		if got := isBareIPv6(where); got != bare {
			t.Errorf("%s: %v, want %v", where, got, bare)
		}
	}
}
