// Nothing: CMake wants a source file in the targets that only exist for their precompiled headers
// (precompiled.cmake).
