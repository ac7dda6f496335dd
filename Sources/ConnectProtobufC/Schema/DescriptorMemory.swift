internal import CProtobufC
internal import SwiftProtobuf

/// Where descriptors, tables and default values live that are made at run time.
///
/// Invariant: what it gives out is valid as long as this object, which a ``SchemaGraph`` or a ``MessageTables`` keeps.
/// All types in it are trivial, as nothing is deinitialised. One thread at a time writes to it.
final class DescriptorMemory: @unchecked Sendable {
  // Safe to share: a pool writes to it before others see it, tables under their lock.
  let arena = Arena(capacity: 4 * 1024)

  deinit {
    self.arena.destroy()
  }

  func array<T>(of values: [T]) -> UnsafeMutablePointer<T>? {
    guard !values.isEmpty else { return nil }
    let memory = self.arena.take(values.count * MemoryLayout<T>.stride).bindMemory(
      to: T.self,
      capacity: values.count
    )
    for (index, value) in values.enumerated() { (memory + index).initialize(to: value) }
    return memory
  }

  func one<T>(_ value: T) -> UnsafeMutablePointer<T> {
    let memory = self.place(for: T.self)
    memory.initialize(to: value)
    return memory
  }

  /// Memory that is not initialised.
  func place<T>(for type: T.Type) -> UnsafeMutablePointer<T> {
    self.arena.take(MemoryLayout<T>.stride).bindMemory(to: T.self, capacity: 1)
  }

  /// A name of a file has no NUL: the pool refuses such.
  func string(_ text: String) -> UnsafePointer<CChar> {
    Array(text.utf8).withUnsafeBytes {
      UnsafePointer(self.arena.newString($0).assumingMemoryBound(to: CChar.self))
    }
  }
}

/// How one message type is laid out: as a C compiler would lay out a struct of protoc-c's making.
struct StructLayout {
  private(set) var size = MemoryLayout<ProtobufCMessage>.stride

  /// The offset of a new member.
  mutating func add(_ size: Int, alignment: Int) -> Int {
    self.size = (self.size + alignment - 1) / alignment * alignment
    defer { self.size += size }
    return self.size
  }

  mutating func add(_ kind: FieldKind) -> Int {
    self.add(kind.size, alignment: min(8, kind.size))
  }
}
