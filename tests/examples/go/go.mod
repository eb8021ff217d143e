module example.test/lease

go 1.19

require github.com/eclipse/paho.golang v0.12.0

require golang.org/x/sync v0.4.0 // indirect
