internal import CProtobufC

/// Owns the memory of one message; the handles on the message and on the messages in it share it.
///
/// Safe to share between threads: it is changed only through a handle that holds the one reference to it
/// (``MessageHandle/makeUnique()``), and otherwise only read.
@usableFromInline
final class MessageStorage: @unchecked Sendable {
  let arena: Arena
  /// What has to live as long: the descriptors that were made at run time.
  let graph: SchemaGraph?
  /// The memory is somebody else's, so that nothing in it may be changed.
  let isBorrowed: Bool
  /// The contents came from a checked source and were not touched by other code since: they need no check before
  /// they are encoded.
  var isChecked: Bool

  init(
    arena: Arena,
    graph: SchemaGraph?,
    isBorrowed: Bool = false,
    isChecked: Bool
  ) {
    self.arena = arena
    self.graph = graph
    self.isBorrowed = isBorrowed
    self.isChecked = isChecked
  }

  deinit {
    self.arena.destroy()
  }
}

typealias MessageDescriptorPointer = UnsafePointer<ProtobufCMessageDescriptor>

/// A message in a storage: all that the typed and the dynamic handles have in common.
///
/// Invariant: `pointer` is that of an initialised message in the memory of `storage`, or, if that is borrowed, in memory
/// that its owner promised to keep. Only after ``makeUnique()`` is the message written to.
@usableFromInline
struct MessageHandle: Sendable {
  /// Room for a few small fields.
  private static let smallCapacity = 256

  @usableFromInline private(set) var storage: MessageStorage
  /// Safe to share for the reason that `storage` gives.
  @usableFromInline private(set) nonisolated(unsafe) var pointer: UnsafeMutableRawPointer

  @inlinable
  init(storage: MessageStorage, pointer: UnsafeMutableRawPointer) {
    self.storage = storage
    self.pointer = pointer
  }

  /// An empty message.
  init(_ descriptor: MessageDescriptorPointer, graph: SchemaGraph?) {
    let size = Arena.rounded(descriptor.pointee.sizeof_message)
    let arena = Arena(capacity: size + Self.smallCapacity)
    self.storage = MessageStorage(arena: arena, graph: graph, isChecked: true)
    self.pointer = arena.newMessage(descriptor).address
  }

  /// A message of somebody else's, which has to stay and not to change while this handle or a copy of it exists.
  init(borrowing message: UnsafeRawPointer, graph: SchemaGraph?) {
    let arena = Arena(capacity: 0)
    self.storage = MessageStorage(arena: arena, graph: graph, isBorrowed: true, isChecked: false)
    // Never written through: a write finds the storage borrowed and copies.
    self.pointer = UnsafeMutableRawPointer(mutating: message)
  }

  /// A copy of all that `message` holds, which was checked.
  init(copying message: UnsafeRawPointer, graph: SchemaGraph?, isChecked: Bool) {
    let arena = Arena(capacity: 1024)
    self.storage = MessageStorage(arena: arena, graph: graph, isChecked: isChecked)
    self.pointer = arena.copy(MessagePointer(reading: message)).address
  }

  var descriptor: MessageDescriptorPointer {
    // Every message begins with its descriptor.
    self.pointer.load(as: MessageDescriptorPointer.self)
  }

  /// The message, to be used while `storage` is kept.
  var message: MessagePointer { MessagePointer(self.pointer) }

  var base: UnsafePointer<ProtobufCMessage> { UnsafePointer(self.message.base) }

  /// Makes this handle the only one on its memory, so that it may be changed.
  mutating func makeUnique() {
    if !self.storage.isBorrowed, isKnownUniquelyReferenced(&self.storage) { return }
    self = MessageHandle(copying: self.pointer, graph: self.storage.graph, isChecked: self.storage.isChecked)
  }

  /// The handle of a message inside this one.
  @inlinable
  func child(_ pointer: UnsafeMutableRawPointer) -> MessageHandle {
    MessageHandle(storage: self.storage, pointer: pointer)
  }

  /// The handle of a message inside this one.
  func child(_ message: MessagePointer) -> MessageHandle { self.child(message.address) }
}
