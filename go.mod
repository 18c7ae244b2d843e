module github.com/rocemu/rocemu

go 1.26
