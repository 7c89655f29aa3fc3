// girih check
// exit 1, at 1:1
// nothing but comments
